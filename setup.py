"""Builds the extension that measures tensors; everything works without it, only slower."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "rule_core.kernels._sweep",
            ["rule_core/kernels/_sweep.c"],
            depends=["rule_core/kernels/_for_processor.h", "rule_core/kernels/_for_type.h"],
            # Contracted operations would round otherwise than numpy does.
            extra_compile_args=["-O3", "-ffp-contract=off", "-fno-math-errno", "-pthread"],
            extra_link_args=["-pthread"],
            py_limited_api=True,
            optional=True,  # without a compiler
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
