// Leaks inside libraries, on their way out of damaged files. Leaks of our own are still reported.
#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5\nleak:libvorbis\n"; }
#endif
