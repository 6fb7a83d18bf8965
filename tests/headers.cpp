// Carries the precompiled headers of the tests; nothing of its own.
