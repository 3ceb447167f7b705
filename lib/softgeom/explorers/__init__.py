"""Live figures for JupyterLab and for the report: they stand above the chapters and nobody imports them."""
