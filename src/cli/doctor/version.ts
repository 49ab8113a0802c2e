/** Tag of an image; undefined if the image has none, or only a digest. */
export const tagOf = (image: string): string | undefined =>
  /^[^@]*?:([^/:@]+)$/.exec(image.split('@')[0] ?? '')?.[1]
