/** "A first bill" of README.md, as it is pasted: right, with the key forgotten, and a second time. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ROOT, type ServiceProcess, startServiceProcess, temporaryDirectory } from '../support/service.ts';

describe('the first bill of the README', function () {
  this.timeout(120_000);
  const directory = temporaryDirectory();
  let service: ServiceProcess;

  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8').split('## A first bill')[1]!;
  const [, steps, bill] = /```sh\n([^]*?)```[^]*?```\n([^]*?)```/.exec(readme)!;
  const pasted = (key: string) => {
    const script = steps!.replace('paste-the-key-here', key).replaceAll('http://localhost:8080', service.url);
    return spawnSync('bash', ['-c', script], { encoding: 'utf8' });
  };

  before(async () => {
    service = await startServiceProcess({ DATA_DIR: join(directory.path, 'data') });
  });
  after(async () => {
    await service.stop();
    directory.remove();
  });

  it('a key that was not pasted: each step says what to do, and nothing else is printed', () => {
    const { stdout, stderr } = pasted('paste-the-key-here');
    expect(stdout).to.equal('');
    expect(stderr.trimEnd().split('\n')).to.have.length(8);
    expect(stderr).to.match(/^meters: set KEY to the API key that npm start printed, and run all steps again$/m);
  });

  it('a wrong key: each step says so', () => {
    const { stdout, stderr } = pasted('sk_wrong');
    expect(stdout).to.equal('');
    for (const line of stderr.trimEnd().split('\n')) expect(line).to.match(/^[a-z/]+: .*API key/);
  });

  it('ends in the bill that is printed there', () => {
    const { stdout, stderr } = pasted(service.api_key);
    expect(stderr).to.equal('');
    expect(stdout.endsWith(bill!), stdout).to.equal(true);
  });

  it('a second time: what is there already says so, and the new subscription begins behind the calls', () => {
    const { stdout, stderr } = pasted(service.api_key);
    expect(stderr).to.equal('customers: a customer with external_id acme exists already\n');
    const again = bill!.replace('20.02', '20').replace('"quantity":"2","amount":"0.02"', '"quantity":"0","amount":"0"');
    expect(stdout.endsWith(again), stdout).to.equal(true);
  });
});
