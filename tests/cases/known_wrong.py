"""Cases that are known to be wrong, with the reason. A run fails if another case is wrong, and also if one of these is right:
then remove it here."""

KNOWN_WRONG = {}
