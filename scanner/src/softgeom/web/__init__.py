"""The page that scans a layer in a browser, and what pages with scripts share."""
