"""Statistics of tensors in one pass: a compiled kernel, and the same with numpy."""
