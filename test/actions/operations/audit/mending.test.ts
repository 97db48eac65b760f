/** docs/operations.md, "What the audit finds", names each kind of finding. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { KINDS } from '../../../../actions/operations/audit/findings.ts';

describe('what the audit finds', () => {
  it('has a section for each kind of finding', () => {
    const text = readFileSync(join(import.meta.dirname, '../../../../docs/operations.md'), 'utf8');
    const headings = [...text.matchAll(/^### (.+)$/gm)].flatMap(([, names]) => names!.split(', '));
    expect(headings).to.include.members(Object.keys(KINDS));
  });
});
