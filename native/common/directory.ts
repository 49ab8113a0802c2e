/** C files that the static programs share. */
export const common = import.meta.dirname
