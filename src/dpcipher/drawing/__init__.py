"""SVG and HTML pieces that know nothing of releases or rows."""
