//! Confining a process by the kernel.
