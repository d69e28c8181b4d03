"""Statistics of tensors in one pass: by a compiled kernel, and the same with numpy.

The kernel (`_sweep.c`) reads pieces of files and measures them in the cache, on several cores and
without the interpreter's lock. It is optional: `lanes` computes the same to the last bit. See
docs/decisions/0071-compiled-kernel.md.
"""
