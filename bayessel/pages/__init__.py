"""HTML pages that need no other file and no network: the parts they share, and the page of one fitted model."""
