import { expect, test } from 'vitest'
import { notesOf } from './notes.ts'

const changelog =
  '# Changelog\n\n## Unreleased\n- new\n\n## [0.2.0] - 2026-01-02\n- two\n### Fixed\n- more\n\n## 0.1.0\n- one\n'

test('the notes of a version are its part of the changelog', () => {
  expect(notesOf(changelog, '0.2.0')).toBe('# Understudy 0.2.0\n\n- two\n### Fixed\n- more\n')
  expect(notesOf(changelog, '0.1.0')).toBe('# Understudy 0.1.0\n\n- one\n')
})

test('a version without a heading gets what is unreleased, also if another begins like it', () => {
  expect(notesOf(changelog, '0.3.0')).toContain('- new')
  expect(notesOf(changelog, '0.1')).toContain('- new')
})

test('a release without notes is refused', () => {
  expect(() => notesOf('# Changelog\n\n## Unreleased\n\n## 0.1.0\n- one\n', '0.2.0')).toThrow(
    /says nothing about 0\.2\.0/,
  )
})
