# The rule evaluator as an image: rule-runner in a virtual environment, for any ordinary user.
# The base needs Python >= 3.11 with its venv module as python3; docs/image.md says how to pin it.
ARG BASE_IMAGE=python:3.11-slim

FROM ${BASE_IMAGE} AS builder
ARG PIP_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY requirements-profiler.lock requirements-build.lock ./
RUN python3 -m venv tools \
    && tools/bin/pip install --quiet --require-hashes --requirement requirements-build.lock \
    && python3 -m venv /opt/rule-runner \
    && /opt/rule-runner/bin/pip install --quiet --require-hashes --requirement requirements-profiler.lock
COPY pyproject.toml README.md LICENSE ./
COPY smdebug smdebug
COPY builtin_rules builtin_rules
COPY rule_runner rule_runner
COPY scripts/sbom scripts/sbom
RUN tools/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist . \
    && /opt/rule-runner/bin/pip install --quiet --no-deps --no-index dist/*.whl \
    && /opt/rule-runner/bin/pip uninstall --quiet --yes pip setuptools \
    && find /opt/rule-runner/lib -type d -name tests -prune -exec rm -rf {} + \
    && python3 scripts/sbom /opt/rule-runner >sbom.cdx.json

FROM ${BASE_IMAGE}
# The version, the revision and where they come from are labels that scripts/build_image adds.
LABEL org.opencontainers.image.title="rule-runner" \
      org.opencontainers.image.description="Evaluates rules over the tensors that a training job saved." \
      org.opencontainers.image.licenses="Apache-2.0"
# The base's own pip goes where there is one; the folders of the contract are anybody's to write.
RUN (python3 -m pip uninstall --quiet --yes pip setuptools wheel 2>/dev/null || true) \
    && mkdir -p /opt/ml/output /opt/ml/processing/output/rule \
    && chmod 1777 /opt/ml/output /opt/ml/processing/output/rule
COPY --from=builder /build/sbom.cdx.json /usr/share/doc/rule-runner/sbom.cdx.json
COPY --from=builder /opt/rule-runner /opt/rule-runner
ENV PATH=/opt/rule-runner/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /opt/ml/processing/output/rule
USER 1000:1000
# There is no HEALTHCHECK: this is a job that ends, and its exit code says how it went.
ENTRYPOINT ["rule-runner"]
