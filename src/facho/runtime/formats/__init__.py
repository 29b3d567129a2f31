"""How numbers are written, where Django's habit is not that of the people who use Facho."""
