"""REST handlers, one module a chapter of the contract; each ends with the table of its endpoints."""
