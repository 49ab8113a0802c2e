# docker build -f deploy/docker/operator.Dockerfile -t understudy/operator:0.1.0 .
#
# The same files as `npm run image -- operator` packs, because the same command puts them together; a test compares
# the settings below with that image's.
FROM node:24-trixie AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci
COPY images ./images
COPY init-waker ./init-waker
COPY native ./native
COPY src ./src
RUN npm run image -- --rootfs /rootfs operator

FROM scratch
COPY --from=build /rootfs/ /
ENV PATH=/usr/bin
ENV NODE_ENV=production
WORKDIR /
EXPOSE 8080/tcp
EXPOSE 8081/tcp
LABEL org.opencontainers.image.title="Understudy operator"
LABEL org.opencontainers.image.licenses="Apache-2.0"
LABEL org.opencontainers.image.version="0.1.0"
USER 65532:65532
ENTRYPOINT ["/usr/bin/node", "/app/understudy.mjs"]
CMD ["operator"]
