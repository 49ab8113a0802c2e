/** The words and constructions that this project does not use, each with what to write instead. CONTRIBUTING.md explains them. */

export interface PlainRule {
  readonly pattern: RegExp
  readonly advice: string
}

const begins = (words: string): RegExp => new RegExp(`^(?:${words})\\b(?!.*\\?\\W*$)`, 'u')

export const plainRules: readonly PlainRule[] = [
  {
    pattern: begins('Who|Whose|Whom|Whoever'),
    advice: 'begin with the subject: a pod, a node, an agent, ...',
  },
  { pattern: begins('What'), advice: 'begin with the subject: name the thing itself' },
  {
    pattern: begins('Of (?:a|an|the|what|those|these|each|all|it|them|one|other)'),
    advice: 'begin with the subject',
  },
  { pattern: /\bwho(?:ever|m(?:so)?ever)\b/iu, advice: 'name the process, pod, node or person' },
  { pattern: /\b(?:no|some|any)body\b/iu, advice: 'name it: no node, another pod, any client' },
  { pattern: /\b(?:that|this|the) one (?:that|who|which|of)\b/iu, advice: 'repeat the noun' },
  { pattern: /\b(?:is|are|was|were|be|been) (?:told|asked)\b/iu, advice: 'say who tells or asks' },
  { pattern: /\bstand(?:s|ing)? still\b|\bstood still\b/iu, advice: 'write "is stopped"' },
  { pattern: /\b(?:goes|go|went|gone|going) on\b/iu, advice: 'write "continues", "resumes" or "runs"' },
  { pattern: /\banew\b/iu, advice: 'write "again" or "from an empty state"' },
  { pattern: /\bin vain\b/iu, advice: 'write "without success"' },
  { pattern: /\blikewise\b/iu, advice: 'repeat the subject and the verb' },
  { pattern: /\bby the word of\b/iu, advice: 'write "according to"' },
  { pattern: /\b(?:brought|brings?|bringing) back\b/iu, advice: 'write "restored"' },
  { pattern: /\bof what (?:is|was|were|has|had|runs|lies)\b/iu, advice: 'name the thing' },
]
