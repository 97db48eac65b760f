import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { inflateSync } from 'node:zlib';
import { expect } from 'chai';
import currencyCodes from 'currency-codes';
import { buildInvoiceDocument, type PrintedDocument } from '../../../core/invoicing/document/document.ts';
import { LANGUAGES, selectTranslations, showMoney } from '../../../core/invoicing/document/language.ts';
import { Fonts, listFontFiles } from '../../../integrations/pdf/fonts.ts';
import { buildLayout } from '../../../integrations/pdf/layout.ts';
import { PdfRenderer, renderPdf } from '../../../integrations/pdf/render.ts';
import { expectGolden } from '../../support/golden.ts';
import { printedInvoice } from '../../support/printed-invoice.ts';

const resolve = createRequire(import.meta.url).resolve;
const MORE = dirname(resolve('@expo-google-fonts/noto-sans-hebrew/400Regular/NotoSansHebrew_400Regular.ttf'));

/** One tenant without additional fonts. */
const ALONE = { fonts: null, asker: 'tenant' };

describe('fonts of documents', () => {
  const fonts = new Fonts(listFontFiles(null));
  const shown = (text: string, of = fonts) => {
    of.begin(null);
    const runs = of.runs(text);
    return { runs: runs.map((run) => `${run.font}: ${run.text}`), lacking: of.lacking };
  };

  it('have every sign of a currency of ISO 4217, and every word of every language', () => {
    const texts = currencyCodes.codes().map((code) => showMoney('1', /^X[A-F,P-Z]/.test(code) ? 'xof' : code, 'en'));
    for (const language of LANGUAGES)
      texts.push(...Object.values(selectTranslations(language)).map((text) => text.replace('�', '')));
    expect(texts.filter((text) => shown(text).lacking)).to.deep.equal([]);
  });

  it('cut a text into runs, spaces and points staying in the run before', () => {
    expect(shown('Ωmega, Жук').runs).to.deep.equal(['NotoSans: Ωmega, Жук']);
    expect(shown('Plan ไทย แลนด์!').runs).to.deep.equal(['NotoSans: Plan ', 'NotoSansThai: ไทย แลนด์!']);
  });

  it('mark what no font has, and take more fonts from a folder', () => {
    expect(shown('כלב')).to.deep.equal({ runs: ['NotoSans: ���'], lacking: true });
    const more = new Fonts(listFontFiles(MORE));
    expect(shown('כלב', more)).to.deep.equal({ runs: ['NotoSansHebrew_400Regular.ttf: כלב'], lacking: false });
  });

  it('have every Chinese character of names, in the form of the country of the receiver or of the text', () => {
    const fontOf = (text: string, country: string | null = null) => {
      fonts.begin(country);
      return [...new Set(fonts.runs(text).map(({ font }) => font.slice('NotoSans'.length)))].join();
    };
    expect(fontOf('直骨')).to.equal('SC');
    expect(fontOf('直骨カ')).to.equal('JP');
    expect(fontOf('서울直')).to.equal('KR');
    const countries = ['CN', 'TW', 'HK', 'JP', 'KR', 'DE'].map((country) => fontOf('直骨', country));
    expect(countries).to.deep.equal(['SC', 'TC', 'TC', 'JP', 'KR', 'SC']);
    expect(fontOf('们', 'JP'), 'a character that the regional font lacks').to.equal('SC');
    for (const [from, to] of [
      [0x4e00, 0x9fff],
      [0xac00, 0xd7a3],
      [0x3041, 0x3096],
      [0x30a1, 0x30fa],
    ] as const) {
      const all = Array.from({ length: to - from + 1 }, (_none, index) => String.fromCodePoint(from + index)).join('');
      const marks =
        shown(all)
          .runs.join('')
          .match(/\ufffd/g)?.length ?? 0;
      // Unicode has added 16 rare characters at the end of the block since.
      expect(marks, from.toString(16)).to.be.at.most(16);
    }
  });

  it('lay what is read from the right in its order, with the numbers in it from the left', () => {
    const runs = fonts.runs('Plan شركة 12 نور end').filter(({ text }) => text.trim() !== '');
    expect(runs.map(({ text }) => text.trim())).to.deep.equal(['Plan', 'نور', '12', 'شركة', 'end']);
    expect(runs.map(({ right_to_left }) => right_to_left)).to.deep.equal([false, true, false, true, false]);
  });

  it('print no character that only controls', () => {
    expect(shown('a\u0000b\u200bc\td').runs).to.deep.equal(['NotoSans: abc d']);
  });
});

describe('the PDF of an invoice', () => {
  /** Returns a digest of the drawing operations. The compressed bytes differ between versions of zlib. */
  const drawn = (pdf: Buffer) => {
    const hash = createHash('sha256');
    for (let at = pdf.indexOf('stream\n'); at >= 0; at = pdf.indexOf('stream\n', at)) {
      const end = pdf.indexOf('endstream', at);
      const packed = pdf.subarray(at + 7, end);
      hash.update(packed[0] === 0x78 ? inflateSync(packed) : packed);
      at = end + 9;
    }
    return hash.digest('hex');
  };

  it('is the same, byte for byte, whenever it is made', async () => {
    const document = buildInvoiceDocument(printedInvoice());
    const one = await renderPdf(document, ALONE);
    const other = await renderPdf(buildInvoiceDocument(printedInvoice({ language: 'el' })), ALONE);
    const again = await renderPdf(document, ALONE);
    expect(one.subarray(0, 5).toString()).to.equal('%PDF-');
    expect(one.equals(again)).to.equal(true);
    expect(one.equals(other)).to.equal(false);
  });

  /** Each kind of document draws as it did when a person approved its golden digest. */
  const kinds: Record<string, ReturnType<typeof printedInvoice>> = {
    ...Object.fromEntries(LANGUAGES.map((language) => [language, printedInvoice({ language })])),
    void: printedInvoice({}, { invoice: { invoice_status: 'VOIDED' } }),
    draft: printedInvoice({}, { invoice: { invoice_status: 'DRAFT', invoice_number: null } }),
    'taxes in the amounts, and groups': printedInvoice(
      {},
      {
        invoice: { total_tax: '0', total: '1252.22' },
        taxes: [{ label: 'VAT 19%', amount: '199.93', is_included: true }],
        lines: [{ id: 'line', display_name: 'API calls', quantity: '1234567', amount: '1284.57' }],
        groups: new Map([
          [
            'line',
            [
              { label: 'web · eu', usage: '1000000', cost: '1040.50' },
              { label: 'app · –', usage: '234567', cost: '244.07' },
            ],
          ],
        ]),
      },
    ),
    'packages, shares and a reverse charge': printedInvoice(
      {},
      {
        invoice: { total_tax: '0', total: '1252.22' },
        taxes: [],
        customer: { tax_exempt: 'reverse' },
        lines: [
          {
            display_name: 'Messages',
            quantity: '2500',
            amount: '30',
            computed_from: {
              price: { billing_model: 'PACKAGE', amount: '10', transform_quantity: { divide_by: 1000 } },
              breakdown: [{ tier: null, units: '3', unit_amount: '10', flat_amount: '0', amount: '30' }],
            },
          },
          {
            display_name: 'Seats',
            quantity: '3',
            amount: '36',
            computed_from: {
              breakdown: [{ tier: null, units: '3', unit_amount: '31', flat_amount: '0', amount: '93' }],
              share: { part_ms: 12 * 86_400_000, whole_ms: 31 * 86_400_000 },
            },
          },
        ],
      },
    ),
    'Arabic names': printedInvoice({}, { customer: { name: 'شركة نور للتجارة 12', address_line1: 'شارع الملك فهد' } }),
    'Chinese, Japanese and Korean names': printedInvoice(
      {},
      {
        customer: { name: '株式会社サンプル', address_line1: '北京市朝阳区 8 号', address_city: '서울' },
        lines: [{ display_name: '调用 API', quantity: '2', amount: '1284.57' }],
      },
    ),
  };
  for (const [kind, question] of Object.entries(kinds))
    it(`is drawn as it was: ${kind}`, async () => {
      const pdf = await renderPdf(buildInvoiceDocument(question), ALONE);
      expectGolden(`invoice-document/drawn/${kind}.json`, { drawn: drawn(pdf) });
    });

  it('shows names in Arabic, Chinese, Japanese and Korean without a mark, and marks Hebrew', () => {
    const said = (question: ReturnType<typeof printedInvoice>) => {
      const fonts = new Fonts(listFontFiles(null));
      const document = buildInvoiceDocument(question);
      fonts.begin(document.country);
      const text = textsOf(buildLayout(document, fonts).content);
      return { marks: text.match(/\ufffd/g)?.length ?? 0, told: text.includes(document.not_shown) };
    };
    expect(said(kinds['Chinese, Japanese and Korean names']!)).to.deep.equal({ marks: 0, told: false });
    expect(said(kinds['Arabic names']!)).to.deep.equal({ marks: 0, told: false });
    // Three marks, and one in the sentence that mentions them.
    expect(said(printedInvoice({}, { customer: { name: 'כלב' } }))).to.deep.equal({ marks: 4, told: true });
  });

  /** Lists all text of a layout, in order. */
  function textsOf(content: unknown): string {
    if (typeof content === 'string') return content;
    if (Array.isArray(content)) return content.map(textsOf).join('');
    if (typeof content !== 'object' || content === null) return '';
    const { text, stack, columns, table } = content as Record<string, unknown>;
    const body = (table as { body?: unknown } | undefined)?.body;
    return [text, stack, columns, body].map(textsOf).join('');
  }

  it('has as many pages as it needs, and a picture', async () => {
    const lines = Array.from({ length: 200 }, (_none, index) => ({ display_name: `Line ${index}`, amount: '1' }));
    const logo =
      'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const pdf = await renderPdf(buildInvoiceDocument(printedInvoice({ logo, page_size: 'LETTER' }, { lines })), ALONE);
    const text = pdf.toString('latin1');
    expect(text.match(/\/Type \/Page\b(?!s)/g)).to.have.length.greaterThan(8);
    expect(text).to.contain('/MediaBox [0 0 612 792]').and.contain('/Subtype /Image');
  });

  /** Objects of a PDF without object streams, by their numbers. */
  const objectsIn = (pdf: Buffer) =>
    new Map(
      [...pdf.toString('latin1').matchAll(/(\d+) 0 obj\n([\s\S]*?)\nendobj/g)].map(([, id, text]) => [id!, text!]),
    );
  /** The structure tree as nested types, found from the root. */
  const treeOf = (pdf: Buffer) => {
    const objects = objectsIn(pdf);
    const typeOf = (id: string): unknown => {
      const text = objects.get(id)!;
      const type = /\/S \/(\w+)/.exec(text)![1]!;
      const children = /\/K \[([^\]]*)\]/.exec(text)?.[1] ?? /\/K ([^/>]*)/.exec(text)?.[1] ?? '';
      const found = [...children.matchAll(/(\d+) 0 R/g)].map(([, child]) => child!);
      return [type, ...found.filter((child) => /\/Type \/StructElem|\/S \//.test(objects.get(child)!)).map(typeOf)];
    };
    const root = [...objects.values()].find((text) => text.includes('/Type /StructTreeRoot'))!;
    return typeOf(/\/K \[(\d+) 0 R/.exec(root)?.[1] ?? /\/K (\d+) 0 R/.exec(root)![1]!) as unknown[];
  };

  it('is tagged: headings, tables with their heads, each cell in its row, and the rest artifacts', async () => {
    const lines = Array.from({ length: 60 }, (_none, index) => ({ display_name: `Line ${index}`, amount: '1' }));
    const pdf = await renderPdf(buildInvoiceDocument(printedInvoice({}, { lines })), ALONE);
    const text = pdf.toString('latin1');
    for (const part of ['/Marked true', '/Lang (en)', '/DisplayDocTitle true', '<pdfuaid:part>1</pdfuaid:part>'])
      expect(text, part).to.contain(part);
    const [type, ...parts] = treeOf(pdf) as [string, ...unknown[][]];
    expect(type).to.equal('Document');
    expect(parts.map(([part]) => part).slice(0, 6)).to.deep.equal(['H1', 'Table', 'Div', 'Div', 'Table', 'Table']);
    const rows = parts[4]!.slice(1) as unknown[][];
    expect(rows, 'a row for each line, and the head once, although it is on each page').to.have.length(61);
    expect(rows[0]!.slice(1).map((cell) => (cell as string[])[0])).to.deep.equal(['TH', 'TH', 'TH', 'TH']);
    for (const row of rows.slice(1))
      expect(row.slice(1).map((cell) => (cell as string[])[0])).to.deep.equal(['TD', 'TD', 'TD', 'TD']);
    // Every drawing operation is in marked content of the tree or of an artifact.
    for (let at = text.indexOf('stream\n'); at >= 0; at = text.indexOf('stream\n', at)) {
      const end = text.indexOf('endstream', at);
      const packed = pdf.subarray(at + 7, end);
      at = end + 9;
      const drawing = packed[0] === 0x78 ? inflateSync(packed).toString('latin1') : '';
      if (!drawing.includes(' Tf')) continue;
      const outside = drawing.replace(/\/(?:Artifact|\w+) <<[^>]*>> BDC[\s\S]*?\nEMC/g, '');
      expect(outside).to.not.match(/ TJ| Tj|\nS\n|\nf\n/);
    }
  });

  it('says why it cannot be made, and the next one is made', async () => {
    const document = buildInvoiceDocument(printedInvoice());
    const broken = { ...document, look: { ...document.look, logo: 'data:image/png;base64,AAAA' } };
    const failure = await renderPdf(broken, ALONE).then(
      () => null,
      (error: Error) => error.message,
    );
    expect(failure).to.match(/^the PDF was not made: /);
    expect((await renderPdf(document, ALONE)).length).to.be.greaterThan(1000);
  });
});

describe('a document that hangs', () => {
  const thread = new URL('../../support/hanging-thread.mjs', import.meta.url);
  const started = () => new PdfRenderer({ folder: null, thread, timeout_ms: 3_000 });
  const short = buildInvoiceDocument(printedInvoice());
  const said = (text: string): PrintedDocument => ({ ...short, notes: [text] });
  const saidAtLength = (text: string): PrintedDocument => ({
    ...said(text),
    rows: Array.from({ length: 1_000 }, () => short.rows[0]!),
  });
  const shown = (outcome: PromiseSettledResult<Buffer>) =>
    outcome.status === 'fulfilled' ? outcome.value.toString() : (outcome.reason as Error).message;

  it('is given up after its time, however many come after it; those are made', async () => {
    const renderer = started();
    const asked = ['one', 'hangs', 'two', 'three'].map((text) => renderer.render(said(text), 'a'));
    const outcomes = await Promise.allSettled(asked);
    expect(outcomes.map(shown)).to.deep.equal(['one', 'the PDF took longer than a minute', 'two', 'three']);
  });

  it('does not fill the memory with those behind it: from the 201st on they are told to come again', async () => {
    const renderer = started();
    const asked = [renderer.render(said('hangs'), 'a')];
    for (let n = 0; n < 201; n++) asked.push(renderer.render(said(`${n}`), 'a'));
    const outcomes = await Promise.allSettled(asked);
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).to.equal(200);
    expect(shown(outcomes.at(-1)!)).to.match(/try again/);
  });

  it('and however many one tenant asks for, another waits for one of them at most, and is not told to come again', async () => {
    const renderer = started();
    const made: string[] = [];
    const ask = (text: string, asker: string) =>
      renderer.render(said(text), asker).then(
        () => made.push(text),
        () => made.push(`no ${text}`),
      );
    const asked = Array.from({ length: 250 }, (_none, n) => ask(`a${n}`, 'a'));
    asked.push(ask('b0', 'b'), ask('b1', 'b'), ask('c0', 'c'));
    await Promise.all(asked);
    const refused = made.filter((text) => text.startsWith('no '));
    expect([refused.length, refused.every((text) => text.startsWith('no a'))]).to.deep.equal([49, true]);
    const order = made.filter((text) => !text.startsWith('no '));
    expect(order.slice(0, 7)).to.deep.equal(['a0', 'a1', 'b0', 'c0', 'a2', 'b1', 'a3']);
  });

  it('and is long keeps those that are short waiting for nothing', async () => {
    const renderer = new PdfRenderer({ folder: null, thread, timeout_ms: 3_000 });
    const made: string[] = [];
    const ask = (document: PrintedDocument, asker: string) =>
      renderer.render(document, asker).then(
        (bytes) => made.push(bytes.toString()),
        () => made.push('given up'),
      );
    await Promise.all([
      ask(saidAtLength('hangs'), 'a'),
      ask(saidAtLength('long a'), 'a'),
      ask(saidAtLength('long b'), 'b'),
      ask(said('short a'), 'a'),
      ask(said('short b'), 'b'),
    ]);
    expect(made).to.deep.equal(['short a', 'short b', 'given up', 'long a', 'long b']);
  });

  it('has a thread of its own where it is long, by what its lines or its notes say, and none where it is not', async () => {
    const renderer = started();
    const threadOf = async (document: PrintedDocument) => (await renderer.render(document, 'a')).toString();
    const of_short = await threadOf(said('which'));
    const of_long = await threadOf(saidAtLength('which'));
    expect(of_long).not.to.equal(of_short);
    expect(await threadOf({ ...said('which'), notes: ['which', 'word '.repeat(4_001)] })).to.equal(of_long);
    expect(
      await threadOf({ ...said('which'), notes: ['which', `${'word '.repeat(2_000)}${'w'.repeat(1_001)}`] }),
    ).to.equal(of_long);
    expect(await threadOf({ ...said('which'), notes: ['which', 'word '.repeat(2_000)] })).to.equal(of_short);
    const details = Array.from({ length: 20 }, () => 'a group, and what it has used');
    const rows = Array.from({ length: 50 }, () => ({ ...short.rows[0]!, details }));
    expect(await threadOf({ ...said('which'), rows })).to.equal(of_long);
    expect(await threadOf({ ...said('which'), rows: rows.slice(0, 20) })).to.equal(of_short);
  });
});
