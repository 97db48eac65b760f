/** The installation by the first command in a fresh clone tells how far it is. */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { environmentWith, ROOT, temporaryDirectory } from '../support/service.ts';

describe('the installation', function () {
  this.timeout(60_000);
  const directory = temporaryDirectory();
  after(() => directory.remove());

  it('counts the packages of this platform that have arrived', async () => {
    for (const file of ['process', 'run.mjs'])
      cpSync(join(ROOT, file), join(directory.path, file), { recursive: true });
    writeFileSync(join(directory.path, 'package.json'), '{"type":"module"}');
    const packages = {
      '': {},
      'node_modules/one': { version: '1.0.0' },
      'node_modules/two': { version: '1.0.0' },
      'node_modules/other': { version: '1.0.0', os: ['aix'], optional: true },
    };
    writeFileSync(join(directory.path, 'package-lock.json'), JSON.stringify({ packages }));
    // Like npm: packages arrive one after the other, and the record is written last.
    mkdirSync(join(directory.path, 'npm'));
    const npm = join(directory.path, 'npm', 'npm-cli.js');
    const record = JSON.stringify({ packages: { 'node_modules/one': packages['node_modules/one'] } });
    writeFileSync(
      npm,
      `import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
       const arrive = (name) => { mkdirSync('node_modules/' + name, { recursive: true }); writeFileSync('node_modules/' + name + '/package.json', '{}'); };
       arrive('one');
       setInterval(() => {
         if (existsSync('two')) arrive('two');
         if (!existsSync('go')) return;
         writeFileSync('node_modules/.package-lock.json', ${JSON.stringify(record)});
         process.exit(0);
       }, 20);`,
    );
    const env = environmentWith({ npm_execpath: npm });
    const launcher = spawn(process.execPath, ['run.mjs', 'migrate'], {
      cwd: directory.path,
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let output = '';
    for await (const text of launcher.stdout) {
      output += String(text);
      if (output.includes('1 of 2')) writeFileSync(join(directory.path, 'two'), '');
      if (output.includes('2 of 2')) writeFileSync(join(directory.path, 'go'), '');
    }
    expect(output.split('\n').slice(1, 3)).to.deep.equal(['  1 of 2 packages', '  2 of 2 packages']);
  });
});
