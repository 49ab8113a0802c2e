/** Numbers of the descriptors at which programs find their files, as in native/common/descriptors.h. */
export const descriptors = {
  programs: 200,
  /** CRIU's images; the directory that `rootfs` saves or restores. */
  directory: 201,
  /** CRIU's directory for its log and for signals by files. */
  work: 202,
  archive: 202,
  list: 203,
  present: 204,
  gate: 205,
} as const
