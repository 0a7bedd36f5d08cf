# One image for `faultline server`, `worker`, `migrate` and the rest. Your own code goes on top: see docs/guides/operate.md.
# To pin the base by its digest: docker build --build-arg PYTHON=python:3.13-slim-trixie@sha256:...
ARG PYTHON=python:3.13-slim-trixie

FROM ${PYTHON} AS build
WORKDIR /source
COPY requirements/build.lock requirements/server.lock requirements/
# Two environments: what builds the wheel stays behind, and the one that is copied has no pip in it.
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.lock \
 && python -m venv --without-pip /opt/faultline \
 && pip --python /opt/faultline/bin/python install --no-cache-dir --require-hashes --only-binary :all: -r requirements/server.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && pip --python /opt/faultline/bin/python install --no-cache-dir --no-deps /wheels/*.whl

FROM ${PYTHON}
LABEL org.opencontainers.image.title="faultline" \
      org.opencontainers.image.description="A crash-safe job queue on PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/faultline /opt/faultline
ENV PATH=/opt/faultline/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
# By number: Kubernetes can tell from it that this is not root.
USER 10001:10001
EXPOSE 8000 8001
STOPSIGNAL SIGTERM
# Of the database and the watchdog's rounds; compose and Kubernetes ask each process for itself.
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=3 CMD ["faultline", "health"]
CMD ["faultline", "server", "--http", "0.0.0.0:8000", "--grpc", "0.0.0.0:8001"]
