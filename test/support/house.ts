/**
 * Measures how readable and how ordered the code is: names, comments, rooms and weight. `npm run house` prints the figures,
 * also of another checkout; test/tidy.test.ts holds them against test/house.json, whose numbers may only fall.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Banned words in identifiers and comments: each has a standard term instead. */
const BANNED = [
  ...['kept', 'look', 'looks', 'looked', 'told', 'tell', 'tells', 'asked', 'said', 'stated', 'desk', 'desks', 'wall'],
  ...['heir', 'heirs', 'stretch', 'stretches', 'ragged', 'anew', 'whoever', 'pursue', 'pursued', 'noting'],
];
/** Names with a banned word that are published: columns of tables, fields of answers and of errors. */
const PUBLISHED = ['told_at', 'told_ms', 'overdue_told_at', 'is_told', 'asked_at', 'taken_as_stated'];
const PUBLISHED_IN: Record<string, readonly string[]> = {
  // Fields of the progress of a test clock, which count the work done.
  'actions/schedule/due-work.ts': ['looked', 'pursued', 'told'],
  'actions/lifecycle/billing/bill-late-usage.ts': ['looked'],
  // Labels of the metrics of jobs.
  'scheduler/jobs/make-daily-rollups.ts': ['asked'],
  'scheduler/jobs/stream-revenue.ts': ['told'],
  'scheduler/jobs/stream-system-events.ts': ['told'],
  // Field of the document of an invoice, which golden files contain.
  'core/invoicing/document/document.ts': ['look'],
  'integrations/pdf/layout.ts': ['look'],
  'core/invoicing/document/credit-note.ts': ['look'],
  // Key in the details of an error.
  'core/subscriptions/trial.ts': ['stated'],
};
const BANNED_PHRASES = ['stands still', 'stand still', 'goes on', 'side by side'];

/** A function begins with one of these verbs, or is a noun that names its value. */
const VERBS = new Set(
  `accept acknowledge act attempt audit backfill bootstrap break buy catch contribute correct dedupe edit intern listen mail promote reach relay requeue
  retax silence spend tax tokenize top view exit misspell name prefix shorten
  acquire activate add adjust advance aggregate align allocate allow amend analyze announce answer append apply
  archive arrange ask assemble assert assign attach authenticate authorize await balance begin bill bind book bound build bump cache calculate call can
  cancel cap capture carry change charge check choose claim clamp classify clean clear clip clone close coalesce collapse collect combine commit compact
  compare compile complete compose compress compute confirm connect consume contain continue convert copy count cover create credit cut debit
  decide declare decode decompress decrypt deduct defer define delay delete deliver derive describe destroy detach detect determine diff digest
  disable discard dispatch distribute divide download draft drain draw drop dump emit enable encode encrypt end enqueue enrich ensure enter enumerate
  escape establish estimate evaluate exclude execute expand expect expire explain export expose express extend extract fail fetch fill filter
  finalize find finish fit fix flatten flush fold follow forget format forward free from gather generate get give grant group guard halt handle has hash
  hide import include increment index infer inherit init initialize insert inspect install intend interpret intersect invalidate invert invite invoice
  invoke is issue iterate join keep lay limit link list load locate lock log lookup make map mark mask match measure merge migrate mirror modify
  mount move multiply narrow negate normalize note notify number observe offer offset omit open order override pack pad page parse partition pass
  patch pause pay peek perform permit persist pick place plan poll pop post prefer prepare preview price print process produce project prompt
  propagate propose prorate prove provide prune publish pull purge push put query quote raise rank rate read rebuild recalculate receive recompute
  reconcile reconnect record recount recover redact redeem reduce refill refresh refund refuse register reject release reload remove rename render
  renew reopen repair repeat replace replay reply report request require reschedule resend reserve reset resize resolve respond restart restore
  restrict resume retain retire retry return reuse reverse revert review revoke rewind rewrite roll rotate round route run sample save scale scan schedule
  scope seal search secure seed select send separate serialize serve set settle shift should show shrink shut sign simplify skip sleep slice sort spawn
  spell split spread stage stamp start stop store stream strip submit subscribe substitute subtract suggest sum summarize suspend swap switch sync
  take terminate test throttle throw time to toggle total touch trace track transfer transform translate traverse trim truncate try unarchive undo unescape
  unite unlink unlock unpack unseal unsubscribe unwrap update upgrade upload upsert use validate value verify visit void wait wake walk warn watch
  weigh will with withdraw wrap write yield`.split(/\s+/),
);

const PRODUCT = [
  'api',
  'actions',
  'commands',
  'core',
  'integrations',
  'pipeline',
  'process',
  'scheduler',
  'storage',
  'tracing',
];
const LAYERS = ['core', 'actions', 'storage', 'api', 'pipeline'];
const ELLIPTIC = /^(?:what|who|whoever|whatever|however|of|behind|those|that of|the same)\b/i;

/** The figures that may only fall. */
export const RATCHET = [
  // Identifiers with a banned word, each counted once per file.
  'banned_identifiers',
  'banned_in_comments',
  'named_of',
  'exports_without_verb',
  'type_names_used_twice',
  'elliptic_comments',
  'unused_exports',
  // Uses of the type `any` in tests.
  'any_in_tests',
] as const;

type Counted = Record<(typeof RATCHET)[number], number>;

type House = Counted & {
  /** Share of functions whose first word is a verb, in percent. */
  verb_first_percent: number;
  type_names: number;
  comments: number;
  rooms: Record<string, { rooms: number; arrows: number; in_knots: number }>;
  lines: { product: number; tests: number; prose_words: number };
};

export function measureHouse(root: string): House {
  const checkout = readCheckout(root);
  const { files, sources, parsed } = checkout;
  const functions = parsed.flatMap(({ code }) => listFunctions(code));
  const verbFirst = functions.filter(({ name }) => isVerbFirst(name)).length;
  const counted = Object.fromEntries(RATCHET.map((name) => [name, listIn(checkout, name).length])) as Counted;
  return {
    ...counted,
    verb_first_percent: Math.round((100 * verbFirst) / functions.length),
    type_names: new Set(parsed.flatMap(({ code }) => listTypes(code))).size,
    comments: parsed.flatMap((source) => source.comments).length,
    rooms: Object.fromEntries(LAYERS.map((layer) => [layer, measureRooms(root, layer, sources)])),
    lines: {
      product: countLines(
        root,
        files.filter((file) => /\.(ts|mjs|sql)$/.test(file) && isProduct(file)),
      ),
      tests: countLines(
        root,
        files.filter((file) => /^test\/.*\.(ts|mjs)$/.test(file)),
      ),
      prose_words: countWords(
        root,
        files.filter((file) => file.endsWith('.md')),
      ),
    },
  };
}

/** Places that a figure of the ratchet counts, as `file: name or comment`. */
function listPlaces(root: string, figure: keyof Counted): string[] {
  return listIn(readCheckout(root), figure);
}

type Checkout = {
  readonly root: string;
  readonly files: readonly string[];
  readonly sources: readonly string[];
  readonly parsed: readonly NamedSource[];
  /** Sources of the console. Identifiers and unused exports are not measured there, because keys of texts are words for people. */
  readonly parsed_console: readonly NamedSource[];
};

function readCheckout(root: string): Checkout {
  const files = listFiles(root);
  const sources = listSources(files);
  const inConsole = files.filter((file) => /^console\/.*\.tsx?$/.test(file) && !file.endsWith('.d.ts'));
  return { root, files, sources, parsed: parseSources(root, sources), parsed_console: parseSources(root, inConsole) };
}

function listIn(checkout: Checkout, figure: keyof Counted): string[] {
  const { parsed, parsed_console } = checkout;
  if (figure === 'type_names_used_twice') {
    const times = countNames([...parsed, ...parsed_console].flatMap(({ code }) => listTypes(code)));
    return [...times].filter(([, count]) => count > 1).map(([name, count]) => `${name}: ${count} times`);
  }
  if (figure === 'unused_exports') return listUnusedExports(checkout);
  if (figure === 'any_in_tests') return listAnyInTests(checkout);
  const list = LISTS[figure];
  const measured = WITH_CONSOLE.includes(figure) ? [...parsed, ...parsed_console] : parsed;
  return measured.flatMap((source) => list(source).map((what) => `${source.file}: ${what}`));
}

const WITH_CONSOLE: readonly string[] = ['banned_in_comments', 'elliptic_comments', 'exports_without_verb'];

/** Exported names that no other source or test contains. */
function listUnusedExports({ root, files, parsed }: Checkout): string[] {
  const texts = files.filter((file) => /\.(ts|mjs)$/.test(file));
  const counts = countNames(
    texts.flatMap((file) => [...new Set(readFileSync(join(root, file), 'utf8').match(/[\w$]+/g))]),
  );
  return parsed.flatMap(({ file, code }) =>
    [...code.matchAll(EXPORTED)].filter(([, name]) => counts.get(name!) === 1).map(([, name]) => `${file}: ${name}`),
  );
}

/** Each place where a test says `any` for a type. */
function listAnyInTests({ root, files }: Checkout): string[] {
  const tests = files.filter((file) => /^test\/.*\.ts$/.test(file));
  return parseSources(root, tests).flatMap(({ file, code }) =>
    [...code.matchAll(/(?:[:<|&,]|\bas|=) *any(?=[\s;,)>|&[\]}=])(?! *:)/g)].map(() => `${file}: any`),
  );
}

const EXPORTED = /^export (?:async )?(?:abstract )?(?:function\*?|const|let|type|interface|class) ([\w$]+)/gm;

const LISTS: Record<
  Exclude<keyof Counted, 'type_names_used_twice' | 'unused_exports' | 'any_in_tests'>,
  (source: NamedSource) => string[]
> = {
  banned_identifiers: ({ file, code }) =>
    listBannedIdentifiers(code).filter((name) => ![...PUBLISHED, ...(PUBLISHED_IN[file] ?? [])].includes(name)),
  banned_in_comments: ({ comments }) => comments.flatMap(listBanned),
  named_of: ({ code }) => listFunctions(code).flatMap(({ name }) => (/[a-z]Of$/.test(name) ? [name] : [])),
  exports_without_verb: ({ file, code }) =>
    listFunctions(code).flatMap(({ name, isExported }) =>
      isExported && !isVerbFirst(name) && !isComponent(file, name) ? [name] : [],
    ),
  elliptic_comments: ({ comments }) => comments.filter((comment) => ELLIPTIC.test(comment)),
};

/** A component of React is a noun that begins with a capital letter. */
function isComponent(file: string, name: string): boolean {
  return file.endsWith('.tsx') && /^[A-Z]/.test(name);
}

function isVerbFirst(name: string): boolean {
  return VERBS.has(splitWords(name)[0]!);
}

function parseSources(root: string, files: readonly string[]): NamedSource[] {
  return files.map((file) => ({ file, ...parseSource(readFileSync(join(root, file), 'utf8')) }));
}

function listSources(files: readonly string[]): string[] {
  return files.filter((file) => /\.ts$/.test(file) && isProduct(file));
}

function isProduct(file: string): boolean {
  return PRODUCT.includes(file.split('/')[0]!) || /^(?:sql\/|[a-z]+\.ts$)/.test(file);
}

type ParsedSource = { code: string; comments: string[] };
type NamedSource = ParsedSource & { file: string };

/** Code without its comments and without the contents of its strings, and each comment as one line of text. */
function parseSource(text: string): ParsedSource {
  const comments: { text: string; isLine: boolean; end: number }[] = [];
  const token =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`|\/(?![*/\s])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*(?=[\s).,;:\]])/g;
  const code = text.replace(token, (found, offset: number) => {
    if (!/^\/[/*]/.test(found)) return '""';
    const isLine = found.startsWith('//');
    const before = comments.at(-1);
    const words = found
      .replace(/^\/[/*]+|\*+\/$/g, '')
      .replace(/^\s*\* ?/gm, '')
      .replace(/\s+/g, ' ')
      .trim();
    // Lines of // that follow one another are one comment.
    if (isLine && before?.isLine && /^\s*$/.test(text.slice(before.end, offset))) {
      before.text += ` ${words}`;
      before.end = offset + found.length;
    } else if (words && !/^(?:biome|oxlint|eslint|v8|c8)-?/.test(words))
      comments.push({ text: words, isLine, end: offset + found.length });
    return ' ';
  });
  return { code, comments: comments.map((comment) => comment.text) };
}

type NamedFunction = { name: string; isExported: boolean };

function listFunctions(code: string): NamedFunction[] {
  const declared = [...code.matchAll(/(export )?(?:default )?(?:async )?function\*? (\w+)/g)];
  const assigned = [
    ...code.matchAll(
      /(export )?const (\w+)(?:: [^=\n]+)? = (?:async )?(?:<[^>]+>)?\((?=[^\n]*=>|[^)]*\)(?:: [^=]+)? =>)/g,
    ),
  ];
  return [...declared, ...assigned].map(([, exported, name]) => ({ name: name!, isExported: Boolean(exported) }));
}

function listTypes(code: string): string[] {
  return [...code.matchAll(/^(?:export )?(?:type|interface) (\w+)/gm)].map(([, name]) => name!);
}

function listBannedIdentifiers(code: string): string[] {
  const names = new Set(code.match(/[A-Za-z_$][\w$]*/g) ?? []);
  return [...names].filter((name) => splitWords(name).some((word) => BANNED.includes(word)));
}

/** The comment once for each banned word and phrase in it. */
function listBanned(comment: string): string[] {
  const text = comment.toLowerCase();
  const words = (text.match(/[a-z]+/g) ?? []).filter((word) => BANNED.includes(word));
  const phrases = BANNED_PHRASES.filter((phrase) => text.includes(phrase));
  return [...phrases, ...words].map((found) => `${found}: ${comment}`);
}

function splitWords(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/_/g, ' ')
    .trim()
    .toLowerCase()
    .split(/\s+/);
}

function countNames(names: readonly string[]): Map<string, number> {
  const times = new Map<string, number>();
  for (const name of names) times.set(name, (times.get(name) ?? 0) + 1);
  return times;
}

/** A room is a folder or a file directly below the layer. Rooms that import each other in a circle form a knot. */
function measureRooms(root: string, layer: string, sources: readonly string[]): House['rooms'][string] {
  const arrows = new Map<string, Set<string>>();
  const roomName = (file: string) => file.split('/')[1]!;
  for (const file of sources.filter((each) => each.startsWith(`${layer}/`))) {
    const from = roomName(file);
    if (!arrows.has(from)) arrows.set(from, new Set());
    for (const [, path] of readFileSync(join(root, file), 'utf8').matchAll(/from '(\.[^']+)'/g)) {
      const target = join(dirname(file), path!).split(sep).join('/');
      if (target.startsWith(`${layer}/`) && roomName(target) !== from) arrows.get(from)!.add(roomName(target));
    }
  }
  const reach = new Map([...arrows.keys()].map((room) => [room, listReachable(room, arrows)]));
  const inKnots = [...reach].filter(([room, reachable]) => reachable.has(room)).length;
  const count = [...arrows.values()].reduce((sum, targets) => sum + targets.size, 0);
  return { rooms: arrows.size, arrows: count, in_knots: inKnots };
}

function listReachable(start: string, arrows: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  const reached = new Set<string>();
  const queue = [start];
  while (queue.length > 0)
    for (const next of arrows.get(queue.pop()!) ?? [])
      if (!reached.has(next)) {
        reached.add(next);
        queue.push(next);
      }
  return reached;
}

function listFiles(root: string): string[] {
  const skipped = new Set(['node_modules', '.git', '.farthing', 'coverage']);
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((file) => !file.split('/').some((part) => skipped.has(part)));
}

function countLines(root: string, files: readonly string[]): number {
  return files.reduce((sum, file) => sum + readFileSync(join(root, file), 'utf8').split('\n').length - 1, 0);
}

/** A word has a letter or a digit, so bars of tables and list marks do not count. */
function countWords(root: string, files: readonly string[]): number {
  return files.reduce(
    (sum, file) =>
      sum +
      readFileSync(join(root, file), 'utf8')
        .split(/\s+/)
        .filter((word) => /[\p{L}\p{N}]/u.test(word)).length,
    0,
  );
}

/** `--root DIR` measures another checkout, `--list FIGURE` prints the places that it counts, `--write` lowers test/house.json. */
function run(args: readonly string[]): void {
  const option = (name: string) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
  const own = join(import.meta.dirname, '../..');
  const root = option('--root') ?? own;
  const figure = RATCHET.find((name) => name === option('--list'));
  if (figure) return listPlaces(root, figure).forEach((place) => console.log(place));
  const figures = measureHouse(root);
  console.log(JSON.stringify(figures, null, 2));
  if (args.includes('--write')) writeRatchet(join(own, 'test/house.json'), figures);
}

function writeRatchet(path: string, figures: House): void {
  const numbers = Object.fromEntries(RATCHET.map((name) => [name, figures[name]]));
  writeFileSync(path, `${JSON.stringify(numbers, null, 2)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href) run(process.argv.slice(2));
