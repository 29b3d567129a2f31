"""What a day would bring: the same engine on a virtual clock."""
