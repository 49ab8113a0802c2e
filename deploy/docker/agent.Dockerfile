# docker build -f deploy/docker/agent.Dockerfile --build-arg BASE=node:24-trixie@sha256:... -t registry.example/understudy/agent:0.1.0 .
#
# BASE has no default: a tag can be moved, so give the digest that you have examined (`docker buildx imagetools inspect
# node:24-trixie`). BASE only builds the image; the image contains nothing from it except the files that `npm run image`
# takes.
#
# The same files as `npm run image -- agent` packs, because the same command puts them together; a test compares
# the settings below with that image's.
ARG BASE
FROM ${BASE} AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci
COPY build ./build
COPY images ./images
COPY init-waker ./init-waker
COPY native ./native
COPY src ./src
# 1: fail if Debian's archive has dropped a package of build/debian.lock.json.
ARG UNDERSTUDY_LOCKED
RUN npm run image -- --rootfs /rootfs agent

FROM scratch
COPY --from=build /rootfs/ /
ENV PATH=/usr/bin
ENV NODE_ENV=production
WORKDIR /
EXPOSE 9443/tcp
EXPOSE 9443/udp
EXPOSE 9444/tcp
EXPOSE 9445/tcp
LABEL org.opencontainers.image.title="Understudy agent"
LABEL org.opencontainers.image.licenses="Apache-2.0"
LABEL org.opencontainers.image.version="0.1.0"
USER 0:0
ENTRYPOINT ["/usr/bin/node", "/app/understudy.mjs"]
CMD ["agent"]
