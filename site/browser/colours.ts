/** Applies the colours that the reader has chosen, before the first paint. */
import { chosenColours, showColours } from './choice.ts'

showColours(chosenColours())
