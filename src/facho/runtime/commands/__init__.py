"""The commands that ask one OLT, or are one. They need no database, load no Django and create no files of their own."""
