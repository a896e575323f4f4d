/* The one function of bcryptprimitives.dll that Rust's standard library needs, for a wine that is too old to have it. */

#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length) {
    while (length > 0) {
        ULONG part = length > 0x10000 ? 0x10000 : (ULONG)length;
        if (!SystemFunction036(buffer, part)) {
            return FALSE;
        }
        buffer += part;
        length -= part;
    }
    return TRUE;
}
