/** The plurals of our kinds. */
export const ourKinds = [
  'backuppodsets',
  'nodereports',
  'migrations',
  'migratingpods',
  'podmigrationjobs',
] as const
export type OurKind = (typeof ourKinds)[number]

/** Belongs to a component that an overlay adds. */
export const optionalKind: OurKind = 'podmigrationjobs'
