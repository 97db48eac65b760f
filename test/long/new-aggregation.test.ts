import { expect } from 'chai';
import { runScript } from '../support/service.ts';

describe('a new aggregation', () => {
  it('is one file and one line: it is matched, stored, queried, billed and verified', async () => {
    const tests = runScript('test', ['test/support/new-aggregation/story.ts']);
    const { code } = await tests.ended;
    expect(code, tests.stdout() + tests.stderr()).to.equal(0);
    expect(tests.stdout()).to.match(/\b2 passing\b/);
  });
});
