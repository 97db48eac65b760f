/** docs/rules/walkthrough.md, as it is pasted: each step prints what stands below it. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ROOT, type ServiceProcess, startServiceProcess, temporaryDirectory } from '../support/service.ts';

describe('the walk through the life of subscriptions', function () {
  this.timeout(180_000);
  const directory = temporaryDirectory();
  let service: ServiceProcess;
  before(async () => {
    service = await startServiceProcess({ DATA_DIR: join(directory.path, 'data') });
  });
  after(async () => {
    await service.stop();
    directory.remove();
  });

  it('prints what it says', () => {
    const page = readFileSync(join(ROOT, 'docs/rules/walkthrough.md'), 'utf8');
    const blocks = [...page.matchAll(/```(bash)?\n([^]*?)```\n/g)].map(([, isCommand, text]) => ({
      isCommand,
      text: text!,
    }));
    const script = blocks.flatMap(({ isCommand, text }) => (isCommand ? text : [])).join('');
    const said = blocks.flatMap(({ isCommand, text }) => (isCommand ? [] : text)).join('');
    const pasted = script.replace('paste-the-key-here', service.api_key).replace('http://localhost:8080', service.url);
    const { stdout, stderr } = spawnSync('bash', ['-c', pasted], { encoding: 'utf8' });
    expect(stderr).to.equal('');
    expect(stdout).to.equal(said);
  });
});
