import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that take more than a minute on two processors. */
const longest = [
  'test/sim/rounds.test.ts',
  'images/images.test.ts',
  'test/apiserver/sim/rounds.test.ts',
  'test/apiserver/paper.test.ts',
  'test/apiserver/memory/crashes.test.ts',
  'test/apiserver/pulled/pulled.test.ts',
  'test/apiserver/crashes.test.ts',
  'test/apiserver/deploy.test.ts',
  'test/apiserver/terms.test.ts',
]

/** Starts the longest files first, so that no worker waits for the last of them. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex(file => moduleId.endsWith(`/${file}`))
      return at < 0 ? longest.length : at
    }
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b))
  }
}
