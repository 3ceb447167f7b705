"""What several notebooks draw alike."""
