"""Builds the extension that measures tensors; everything works without it, only slower."""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel


class WheelOfWhatWasBuilt(bdist_wheel):
    """Makes a wheel for any platform where the extension could not be built."""

    def run(self) -> None:
        """Build the extension before the tags of the wheel are chosen."""
        self.run_command("build_ext")
        extensions = map(Path, self.get_finalized_command("build_ext").get_outputs())
        if not any(path.exists() for path in extensions):
            self.distribution.ext_modules = None
            self.root_is_pure = True
        super().run()


setup(
    cmdclass={"bdist_wheel": WheelOfWhatWasBuilt},
    ext_modules=[
        Extension(
            "rule_core.kernels._sweep",
            ["rule_core/kernels/_sweep.c"],
            depends=["rule_core/kernels/_for_processor.h", "rule_core/kernels/_for_type.h"],
            # Contracted operations would round otherwise than numpy does.
            extra_compile_args=["-O3", "-ffp-contract=off", "-fno-math-errno", "-pthread", "-g0"],
            extra_link_args=["-pthread"],
            py_limited_api=True,
            optional=True,  # without a compiler
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
