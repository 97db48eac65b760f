/**
 * Tags the content of a PDF, so that screen readers and other programs find headings, tables and their cells (PDF/UA). The layout gives each
 * text its element of the structure tree; pdfmake, which has no tags, copies it to the lines that it draws. Drawing is wrapped here: a line
 * is marked as content of its element, anything else as an artifact.
 */
import { createRequire } from 'node:module';

type MarkedContent = object;
type StructureElement = { add(child: StructureElement | MarkedContent): unknown; end(): void };
/** The part of pdfkit's document that is used here; its type declarations lack it. */
type TaggedDocument = {
  readonly page: object;
  struct(type: string, options: { alt?: string; scope?: string; bbox?: readonly number[] }): StructureElement;
  addStructure(element: StructureElement): unknown;
  markStructureContent(type: string): MarkedContent;
  markContent(tag: 'Artifact', options: { type: 'Layout' | 'Pagination' }): unknown;
  endMarkedContent(): unknown;
  appendXML(xml: string): unknown;
};

/** Types of ISO 32000, 14.8.4. */
type ElementType = 'Document' | 'Div' | 'H1' | 'P' | 'Figure' | 'Table' | 'TR' | 'TH' | 'TD';
type ElementOptions = { readonly scope?: 'Column' | 'Row'; readonly alt?: string };

/** An element of the structure tree, in reading order among the children of its parent. */
export class Tag {
  readonly #children: Tag[] = [];
  readonly #contents: MarkedContent[] = [];
  readonly #type: ElementType;
  readonly #options: ElementOptions;
  readonly #root: Tag;
  #page: object | null = null;
  #bbox: readonly number[] | null = null;

  constructor(type: ElementType, options: ElementOptions = {}, parent: Tag | null = null) {
    this.#type = type;
    this.#options = options;
    this.#root = parent === null ? this : parent.#root;
  }

  get root(): Tag {
    return this.#root;
  }

  add(type: ElementType, options: ElementOptions = {}): Tag {
    const child = new Tag(type, options, this);
    this.#children.push(child);
    return child;
  }

  /** Begins content of this element. A head that is repeated on a further page is an artifact: it would be read out again. */
  begin(document: TaggedDocument, bbox: readonly number[] | null = null): void {
    const isRepeated = this.#options.scope === 'Column' && this.#page !== null && this.#page !== document.page;
    if (isRepeated) {
      document.markContent('Artifact', { type: 'Pagination' });
      return;
    }
    this.#page ??= document.page;
    this.#bbox ??= bbox;
    this.#contents.push(document.markStructureContent(this.#type));
  }

  toElement(document: TaggedDocument): StructureElement {
    const bbox = this.#bbox === null ? {} : { bbox: this.#bbox };
    const element = document.struct(this.#type, { ...this.#options, ...bbox });
    for (const content of this.#contents) element.add(content);
    for (const child of this.#children) element.add(child.toElement(document));
    element.end();
    return element;
  }
}

type Drawn = { readonly tag?: Tag; readonly inlines?: readonly { readonly tag?: Tag }[] } & Partial<
  Record<'x' | 'y' | '_width' | '_height', number>
>;
type Draw = (this: DocumentRenderer, item: Drawn, ...more: unknown[]) => void;
type DocumentRenderer = { readonly pdfDocument: TaggedDocument; root?: Tag };
type RendererPrototype = Record<'renderLine' | 'renderVector' | 'renderImage' | 'renderWatermark', Draw> & {
  renderPages(this: DocumentRenderer, pages: unknown): void;
};

/**
 * States in the metadata that the file follows PDF/UA-1. The option `subset` of pdfkit would do so too, but it also writes a CIDSet that
 * lists only the first characters of a font.
 */
const CONFORMANCE = `
  <rdf:Description xmlns:pdfuaid="http://www.aiim.org/pdfua/ns/id/" rdf:about="">
    <pdfuaid:part>1</pdfuaid:part>
  </rdf:Description>`;

/** Wraps the drawing functions of pdfmake, once per thread. */
export function markDrawnContent(): void {
  const module = createRequire(import.meta.url)('pdfmake/js/Renderer.js') as {
    default: { prototype: RendererPrototype };
  };
  const { prototype } = module.default;
  const { renderLine, renderVector, renderImage, renderWatermark, renderPages } = prototype;
  prototype.renderLine = function (line, ...more) {
    if (line.inlines?.length) mark(this, line.inlines[0]!.tag, 'Pagination');
    renderLine.call(this, line, ...more);
    if (line.inlines?.length) this.pdfDocument.endMarkedContent();
  };
  prototype.renderImage = function (image, ...more) {
    const { x = 0, y = 0, _width = 0, _height = 0 } = image;
    mark(this, image.tag, 'Layout', [x, y, x + _width, y + _height]);
    renderImage.call(this, image, ...more);
    this.pdfDocument.endMarkedContent();
  };
  prototype.renderVector = drawArtifact(renderVector);
  prototype.renderWatermark = drawArtifact(renderWatermark);
  prototype.renderPages = function (pages) {
    renderPages.call(this, pages);
    if (this.root) this.pdfDocument.addStructure(this.root.toElement(this.pdfDocument));
    this.pdfDocument.appendXML(CONFORMANCE);
  };
}

function mark(
  renderer: DocumentRenderer,
  tag: Tag | undefined,
  artifact: 'Layout' | 'Pagination',
  bbox: readonly number[] | null = null,
): void {
  const { pdfDocument } = renderer;
  if (!tag) {
    pdfDocument.markContent('Artifact', { type: artifact });
    return;
  }
  renderer.root ??= tag.root;
  tag.begin(pdfDocument, bbox);
}

function drawArtifact(draw: Draw): Draw {
  return function (item, ...more) {
    this.pdfDocument.markContent('Artifact', { type: 'Layout' });
    draw.call(this, item, ...more);
    this.pdfDocument.endMarkedContent();
  };
}
