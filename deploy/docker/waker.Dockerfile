# docker build -f deploy/docker/waker.Dockerfile -t understudy/waker:0.1.0 .
#
# The same file as `npm run image -- waker` packs, because the same command builds it; a test compares the settings
# below with that image's.
FROM node:24-trixie AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci
COPY images ./images
COPY init-waker ./init-waker
COPY native ./native
RUN npm run image -- --rootfs /rootfs waker

FROM scratch
COPY --from=build /rootfs/ /
ENV PATH=/
WORKDIR /
EXPOSE 20000/tcp
LABEL org.opencontainers.image.title="Understudy waker"
LABEL org.opencontainers.image.licenses="Apache-2.0"
LABEL org.opencontainers.image.version="0.1.0"
USER 65532:65532
ENTRYPOINT ["/waker"]
