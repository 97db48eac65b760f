/** Layout of a document for pdfmake, which breaks lines and pages. The content comes from core/invoicing/document. */
import type {
  Column,
  Content,
  ContentText,
  StyleDictionary,
  TableCell,
  TDocumentDefinitions,
} from 'pdfmake/interfaces.js';
import type { DocumentRow, PrintedDocument } from '../../core/invoicing/document/document.ts';
import type { DocumentParty } from '../../core/invoicing/document/party.ts';
import type { Fonts } from './fonts.ts';
import { Tag } from './tagged.ts';

const GREY = '#5f6b7a';
const MARGIN = 48;
const LOGO: readonly [number, number] = [170, 60];

/**
 * The body is laid out first, because that finds the characters that no font has; the last paragraph of the document
 * mentions them.
 */
export function buildLayout(document: PrintedDocument, fonts: Fonts): TDocumentDefinitions {
  const text = createTextFunction(fonts);
  const { look, page, foot, mark } = document;
  const root = new Tag('Document');
  const content: Content[] = [
    buildHead(document, text, root),
    {
      columns: [buildParty(document.from, text, root), buildParty(document.to, text, root)],
      columnGap: 24,
      margin: [0, 24, 0, 24],
    },
    buildRows(document, text, root),
    buildSums(document, text, root),
    ...document.notes.map((note) => ({ ...text(note, root.add('P')), margin: [0, 14, 0, 0] }) as Content),
  ];
  const foots = text(foot, null).text;
  return {
    pageSize: look.page_size,
    pageMargins: [MARGIN, MARGIN, MARGIN, MARGIN + 12],
    content: fonts.lacking
      ? [...content, { ...text(document.not_shown, root.add('P'), 'detail'), margin: [0, 18, 0, 0] } as Content]
      : content,
    footer: (current, count) => ({
      columns: [
        { text: foots, style: 'detail' },
        { ...text(`${page.word} ${current} ${page.of} ${count}`, null, 'detail'), alignment: 'right', width: 90 },
      ],
      margin: [MARGIN, 18, MARGIN, 0],
    }),
    ...(mark === null ? {} : { watermark: { text: mark, font: 'NotoSans', color: GREY, opacity: 0.12, bold: true } }),
    info: {
      title: `${document.title} ${foot}`,
      creator: 'Farthing',
      producer: 'Farthing',
      creationDate: new Date(document.dated_ms),
      modDate: new Date(document.dated_ms),
    },
    language: document.language,
    version: '1.7',
    tagged: true,
    displayTitle: true,
    images: look.logo === null ? {} : { logo: look.logo },
    defaultStyle: { font: 'NotoSans', fontSize: 9.5, lineHeight: 1.15 },
    styles: buildStyles(look.color),
  };
}

function buildStyles(color: string): StyleDictionary {
  return {
    title: { fontSize: 22, bold: true, color },
    label: { fontSize: 8, color: GREY },
    name: { fontSize: 11, bold: true },
    detail: { fontSize: 8, color: GREY },
    head: { fontSize: 8.5, bold: true, color },
    strong: { bold: true, fontSize: 10.5 },
  };
}

/** `tag` is the element of the structure tree; null for a text of the page itself, such as its number. */
type CreateText = (text: string, tag: Tag | null, style?: string) => ContentText & { text: ContentText[] };

function createTextFunction(fonts: Fonts): CreateText {
  return (text, tag, style) => ({
    text: fonts.runs(text).map(({ text: part, font, right_to_left }) => ({
      text: part,
      font,
      ...(tag === null ? {} : { tag }),
      // A right-to-left line must be laid out as a whole, to order its words. Without `fontFeatures`, pdfkit lays out each word
      // separately from the left; an empty list suffices.
      ...(right_to_left ? { noWrap: true, fontFeatures: [] } : {}),
    })),
    ...(style === undefined ? {} : { style }),
  });
}

function buildHead({ title, facts, look, from }: PrintedDocument, text: CreateText, root: Tag): Content {
  const logo = look.logo === null ? [] : [buildLogo(from.name, root)];
  const left: Column = { width: '*', stack: [...logo, text(title, root.add('H1'), 'title')] };
  const table = root.add('Table');
  const body: TableCell[][] = facts.map(({ label, value }) => {
    const row = table.add('TR');
    return [
      { ...text(label, row.add('TH', { scope: 'Row' }), 'label'), margin: [0, 1, 0, 0] },
      { ...text(value, row.add('TD')), alignment: 'right' },
    ];
  });
  const right: Column = {
    width: 250,
    table: { widths: ['*', 'auto'], body },
    layout: { ...NO_LINES, paddingLeft: () => 0, paddingRight: () => 0, paddingTop: () => 1, paddingBottom: () => 1 },
  };
  return { columns: [left, right], columnGap: 24 };
}

function buildLogo(alt: string, root: Tag): Content {
  const tag = root.add('Figure', { alt: alt || 'Logo' });
  return { image: 'logo', fit: [...LOGO], margin: [0, 0, 0, 10], tag } as Content;
}

function buildParty({ label, name, lines }: DocumentParty, text: CreateText, root: Tag): Column {
  if (name === '' && lines.length === 0) return { width: '*', text: '' };
  const part = root.add('Div');
  return {
    width: '*',
    stack: [
      { ...text(label, part.add('P'), 'label'), margin: [0, 0, 0, 2] },
      ...(name === '' ? [] : [text(name, part.add('P'), 'name')]),
      ...lines.map((line) => text(line, part.add('P'))),
    ],
  };
}

const NO_LINES = { hLineWidth: () => 0, vLineWidth: () => 0 };

function buildRows({ columns, rows, look }: PrintedDocument, text: CreateText, root: Tag): Content {
  const table = root.add('Table');
  const first = table.add('TR');
  const head = columns.map(
    (column, index): TableCell => ({
      ...text(column, first.add('TH', { scope: 'Column' }), 'head'),
      ...(index === 0 ? {} : { alignment: 'right' }),
    }),
  );
  return {
    table: {
      headerRows: 1,
      dontBreakRows: true,
      widths: columns.length === 2 ? ['*', 90] : ['*', 70, 80, 90],
      body: [head, ...rows.map((row) => buildCells(row, text, table.add('TR')))],
    },
    layout: {
      ...NO_LINES,
      hLineWidth: (line, { table }) => (line === 1 || line === table.body.length ? 0.8 : line === 0 ? 0 : 0.4),
      hLineColor: (line, { table }) => (line === 1 || line === table.body.length ? look.color : '#d8dde3'),
      paddingLeft: (column) => (column === 0 ? 0 : 6),
      paddingRight: (column, { table }) => (column === table.body[0]!.length - 1 ? 0 : 6),
      paddingTop: () => 5,
      paddingBottom: () => 5,
    },
  };
}

function buildCells(
  { text: what, details, quantity, unit_price, amount }: DocumentRow,
  text: CreateText,
  row: Tag,
): TableCell[] {
  const right = (value: string): TableCell => ({ ...text(value, row.add('TD')), alignment: 'right' });
  const cell = row.add('TD');
  return [
    { stack: [text(what, cell.add('P')), ...details.map((detail) => text(detail, cell.add('P'), 'detail'))] },
    ...[quantity, unit_price, amount].flatMap((value) => (value === null ? [] : [right(value)])),
  ];
}

function buildSums({ sums }: PrintedDocument, text: CreateText, root: Tag): Content {
  const table = root.add('Table');
  const body = sums.map(({ label, value, strong }): TableCell[] => {
    const row = table.add('TR');
    const style = strong ? 'strong' : undefined;
    return [
      text(label, row.add('TH', { scope: 'Row' }), style),
      { ...text(value, row.add('TD'), style), alignment: 'right', noWrap: true },
    ];
  });
  return {
    columns: [
      { width: '*', text: '' },
      {
        width: 270,
        table: { widths: ['*', 'auto'], dontBreakRows: true, keepWithHeaderRows: 1, body },
        layout: { ...NO_LINES, paddingLeft: () => 0, paddingRight: () => 0 },
      },
    ],
    margin: [0, 12, 0, 0],
    unbreakable: true,
  };
}
