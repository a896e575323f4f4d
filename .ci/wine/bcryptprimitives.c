/* Random numbers for programs of Rust under a wine that has no bcryptprimitives.dll: all before 9.0. Built and put beside the
   tests by `.ci/windows`; part of nothing that ships. */
#include <stddef.h>

/* What `RtlGenRandom` is called in advapi32. */
unsigned char __stdcall SystemFunction036(void *buffer, unsigned long length);

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *buffer, size_t length) {
    while (length > 0) {
        unsigned long part = length > (1UL << 20) ? (1UL << 20) : (unsigned long)length;
        if (!SystemFunction036(buffer, part)) return 0;
        buffer += part;
        length -= part;
    }
    return 1;
}
