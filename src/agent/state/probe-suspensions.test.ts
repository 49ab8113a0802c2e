import { expect, it } from 'vitest'
import { createProbeSuspensions } from './probe-suspensions.ts'

it('a suspension covers probes that begin only later, until it ends', () => {
  const probes = createProbeSuspensions()
  let suspended = 0
  const prober = () => {
    suspended += 1
    return () => {
      suspended -= 1
    }
  }
  const resume = probes.suspendProbes('p')
  const resumeOther = probes.suspendProbes('q')
  probes.onProber('p', prober)
  expect(suspended).toBe(1)
  const resumeToo = probes.suspendProbes('p')
  expect(suspended).toBe(2)
  resume()
  resume()
  resumeOther()
  expect(suspended).toBe(1)
  resumeToo()
  expect(suspended).toBe(0)
})

it('a suspension counts for the next prober of the same pod', () => {
  const probes = createProbeSuspensions()
  const suspended: string[] = []
  const prober = (name: string) => () => {
    suspended.push(name)
    return () => void suspended.splice(suspended.indexOf(name), 1)
  }
  probes.onProber('p', prober('first'))
  const resume = probes.suspendProbes('p')
  probes.onProber('p', undefined)
  probes.onProber('p', prober('second'))
  expect(suspended).toEqual(['first', 'second'])
  resume()
  expect(suspended).toEqual(['first'])
})
