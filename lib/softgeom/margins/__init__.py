"""Where attention's change of variables is singular, and the log-barrier that keeps a model away from there."""
