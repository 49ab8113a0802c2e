/** Quantities of resources, such as `250m` or `1Gi`. */

const factors: Readonly<Record<string, number>> = {
  ...{ n: 1e-6, u: 1e-3, m: 1, '': 1e3, k: 1e6, M: 1e9, G: 1e12, T: 1e15, P: 1e18, E: 1e21 },
  ...{ Ki: 2 ** 10 * 1e3, Mi: 2 ** 20 * 1e3, Gi: 2 ** 30 * 1e3, Ti: 2 ** 40 * 1e3, Pi: 2 ** 50 * 1e3 },
  Ei: 2 ** 60 * 1e3,
}

/** Returns thousandths of the unit, rounded up: whole numbers add up exactly. Undefined: the text is no quantity. */
export function thousandthsIn(text: string): number | undefined {
  const [, amount, exponent = '0', suffix = ''] =
    /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i))?$/.exec(text) ?? []
  const factor = factors[suffix]
  return amount === undefined || factor === undefined
    ? undefined
    : Math.ceil(Number(amount) * 10 ** Number(exponent) * factor - 1e-9)
}
