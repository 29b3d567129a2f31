"""Commands that query or simulate one OLT. They need no database, load no Django and create no files of their own."""
