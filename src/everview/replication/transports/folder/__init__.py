"""A folder that sites share."""
