import type { JobView } from './view.ts'

/** The name is the same after each restart, so that no job has two reservations. */
export const reservationNameOf = ({ uid }: Pick<JobView, 'uid'>): string => `reservation-${uid}`
