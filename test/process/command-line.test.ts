// What is typed wrongly behind a command is one line and exit code 2, and nothing has been opened.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { parseArguments } from '../../process/command-line.ts';
import { ROOT, runScript, temporaryDirectory } from '../support/service.ts';

// It is read before anything is installed, and so it is no TypeScript.
type Help = Readonly<Record<string, { does: string; options?: [string, string][] }>>;
const { HELP, formatHelp } = (await import(pathToFileURL(join(ROOT, 'process/help.mjs')).href)) as {
  HELP: Help;
  formatHelp(name: string): string;
};

describe('a command that is typed wrongly', function () {
  this.timeout(60_000);
  const directory = temporaryDirectory();
  const DATA_DIR = join(directory.path, 'data');
  after(() => directory.remove());

  const cases: [command: string, args: string[], said: RegExp][] = [
    ['partitions', [], /--to wants a whole number up to 4096/],
    ['partitions', ['--to', '0'], /--to wants a whole number up to 4096/],
    ['chaos', ['--seeds', 'many'], /whole numbers/],
    ['demo', ['--frob'], /Unknown option '--frob'/],
    ['start', ['--port', '80'], /start: takes no options, and this is one: --port/],
    ['audit', ['--from', 'yesterday'], /--from: yesterday is not a date/],
    ['audit', ['--from', '2026-03-10', '--to', '2026-03-10'], /--from 2026-03-10 is not before --to 2026-03-10/],
  ];
  for (const [command, args, said] of cases) {
    it([command, ...args].join(' '), async () => {
      const { ended, stdout, stderr } = runScript(command, args, { DATA_DIR });
      expect(await ended).to.deep.equal({ code: 2, signal: null });
      expect(stdout()).to.equal('');
      expect(stderr()).to.match(said);
      expect(stderr().trimEnd().split('\n')).to.have.length(1);
      expect(existsSync(DATA_DIR)).to.equal(false);
    });
  }
});

/** All commands parse their arguments by this function. */
describe('parseArguments', () => {
  const { argv, exit } = process;
  const { write } = process.stderr;
  let printed = '';
  beforeEach(() => {
    printed = '';
    process.stderr.write = ((text: string) => (printed += text) !== '') as typeof write;
    process.exit = ((code: number) => {
      throw new Error(`ended with ${code}`);
    }) as typeof exit;
  });
  afterEach(() => {
    Object.assign(process, { argv, exit });
    process.stderr.write = write;
  });

  for (const [args, line] of [
    [['--to'], /^partitions: .*--to <value>' argument missing.*\n$/],
    [['--frob'], /^partitions: Unknown option '--frob'.*\n$/],
    [['4'], /^partitions: Unexpected argument '4'.*\n$/],
  ] as const)
    it(args.join(' '), () => {
      process.argv = ['node', 'partitions', ...args];
      expect(() => parseArguments('partitions', { to: { type: 'string' } })).to.throw('ended with 2');
      expect(printed).to.match(line);
    });
});

describe('--help', () => {
  // One that starts a service, one that takes options, and one that is run without the dependencies.
  for (const name of ['start', 'audit', 'verify-invoice'])
    it(`of ${name} says what it does, and starts nothing`, async () => {
      const { ended, stdout, stderr } = runScript(name, ['--help'], {});
      expect(await ended, name).to.deep.equal({ code: 0, signal: null });
      expect(stdout()).to.equal(`${formatHelp(name)}\n`);
      expect(stderr()).to.equal('');
    });

  it('of each script says what it does, and no other script is run', async () => {
    for (const name of Object.keys(HELP)) expect(formatHelp(name).startsWith(`npm run ${name}`), name).to.equal(true);
    const { ended, stderr } = runScript('no-such-script');
    expect(await ended).to.deep.equal({ code: 1, signal: null });
    const [, scripts] = /Scripts: (.*)\. Run/.exec(stderr())!;
    expect(scripts!.split(', ')).to.have.members(Object.keys(HELP));
  });

  it('is there for each script of package.json', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object };
    expect(Object.keys(HELP).sort()).to.deep.equal(Object.keys(scripts).sort());
  });

  // What a command takes is written where it is read; the help names the same.
  for (const [name, file] of Object.entries({
    demo: 'demo.ts',
    audit: 'commands/audit.ts',
    partitions: 'commands/partitions.ts',
    chaos: 'test/chaos/main.ts',
  })) {
    it(`of ${name} names the options that it takes`, () => {
      const source = readFileSync(join(ROOT, file), 'utf8');
      const [, taken] = /parseArguments\('[a-z]+', \{([^]*?)\}\)/.exec(source)!;
      const options = [...taken!.matchAll(/(?<=^|[{,])\s*'?([a-z-]+)'?: (?=\{ type|text|flag)/gm)].map(
        ([, option]) => option!,
      );
      const { options: told = [] } = HELP[name]!;
      expect(told.map(([option]) => option.split(' ')[0]!.slice(2)).sort()).to.deep.equal(options.sort());
    });
  }
});
