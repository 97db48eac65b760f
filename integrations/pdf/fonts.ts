/**
 * Fonts of documents: bundled ones and those of an operator (PDF_FONTS_DIR). A text is split into runs; each run uses the first font that
 * has its characters. A character that no font has is shown as a mark, never as an empty box (docs/rules/documents.md, "Fonts").
 */

import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import bidiFactory from 'bidi-js';
import { type Font, openSync } from 'fontkit';

type FontFiles = { readonly name: string; readonly normal: string; readonly bold: string };
/** Part of a text in one font, in visual order from left to right. */
type TextRun = { readonly text: string; readonly font: string; readonly right_to_left: boolean };

const BUNDLED = ['', 'arabic', 'armenian', 'bengali', 'khmer', 'thai'];
const resolve = createRequire(import.meta.url).resolve;

/** Chinese characters have regional forms: mainland China, Taiwan and Hong Kong, Japan, Korea. */
const HAN_FONTS = ['NotoSansSC', 'NotoSansTC', 'NotoSansJP', 'NotoSansKR'] as const;
type HanFont = (typeof HAN_FONTS)[number];

/** Lists the fonts in order of preference. An operator's fonts precede the large ones of Chinese characters. */
export function listFontFiles(folder: string | null): FontFiles[] {
  const bundled = BUNDLED.map((script) =>
    script === '' ? 'NotoSans' : `NotoSans${script[0]!.toUpperCase()}${script.slice(1)}`,
  );
  const own = folder === null ? [] : listFolderFonts(folder);
  return [...bundled.map(locateFont), ...own, ...HAN_FONTS.map(locateFont)];
}

function locateFont(name: string): FontFiles {
  const script = name.slice('NotoSans'.length).toLowerCase();
  const family = script === '' ? 'noto-sans' : `noto-sans-${script}`;
  const at = (weight: string) => resolve(`@expo-google-fonts/${family}/${weight}/${name}_${weight}.ttf`);
  return { name, normal: at('400Regular'), bold: at('700Bold') };
}

/**
 * Lists the fonts in a folder. A file with `Bold` in its name is the bold form of the file whose name has `Regular`, or nothing, in that
 * position.
 */
function listFolderFonts(folder: string): FontFiles[] {
  const files = readdirSync(folder)
    .filter((file) => /\.(ttf|otf)$/i.test(file))
    .sort();
  const bold = new Set(files.filter((file) => /bold/i.test(file)));
  const toFamily = (file: string) => file.replace(/[-_ ]?(\d{3})?(regular|bold)?\.(ttf|otf)$/i, '').toLowerCase();
  return files
    .filter((file) => !bold.has(file))
    .map((file) => {
      const heavy = [...bold].find((other) => toFamily(other) === toFamily(file)) ?? file;
      return { name: file, normal: join(folder, file), bold: join(folder, heavy) };
    });
}

/** Mark that is shown for a character that no font has. */
const MARK = '\ufffd';
/**
 * Characters without a script, such as spaces and punctuation; they stay in the font of the surrounding text if it has
 * them.
 */
const NEUTRAL = /[\p{Zs}\p{P}\p{M}\u200c\u200d]/u;
const NOT_PRINTED = /[\p{Cc}\u200b\u2060\ufeff]/gu;
// The type declarations describe a nested default export, which does not exist.
const { getEmbeddingLevels, getReorderSegments } = (bidiFactory as unknown as typeof bidiFactory.default)();

type CharacterFont = { readonly name: string; readonly has: (character: string) => boolean };

/** Opens the file at the first question, because the fonts of Chinese characters have up to 10 MB. */
function openLazily({ name, normal }: FontFiles): CharacterFont {
  let opened: Font | undefined;
  const open = (): Font => {
    const font = openSync(normal);
    if (!('hasGlyphForCodePoint' in font))
      throw new Error(`${normal} is a collection: give each of its fonts as a file`);
    return font;
  };
  return {
    name,
    has: (character) => {
      opened ??= open();
      return opened.hasGlyphForCodePoint(character.codePointAt(0)!);
    },
  };
}

export class Fonts {
  readonly #fonts: CharacterFont[];
  #country: string | null = null;
  /** Whether a mark replaced a character that no font has. */
  lacking = false;

  constructor(files: readonly FontFiles[]) {
    this.#fonts = files.map(openLazily);
  }

  /** Begins a document. `country` is the code of its receiver's country, which decides the form of Chinese characters. */
  begin(country: string | null): void {
    this.#country = country;
    this.lacking = false;
  }

  runs(text: string): TextRun[] {
    const shown = text.replaceAll('\t', ' ').replace(NOT_PRINTED, (sign) => (sign === '\n' ? '\n' : ''));
    return shown.split('\n').flatMap((line, index) => {
      const fonts = this.#order(line);
      const runs = splitVisually(line).flatMap(({ part, right_to_left }) => this.#inFonts(part, right_to_left, fonts));
      return index === 0 ? runs : [{ text: '\n', font: this.#fonts[0]!.name, right_to_left: false }, ...runs];
    });
  }

  /** Moves the preferred font of Chinese characters before the others. */
  #order(line: string): readonly CharacterFont[] {
    const preferred = selectHanFont(line, this.#country);
    if (preferred === null) return this.#fonts;
    const isHan = ({ name }: CharacterFont) => HAN_FONTS.some((one) => one === name);
    const han = this.#fonts.filter(isHan);
    const others = this.#fonts.filter((font) => !isHan(font));
    return [
      ...others,
      ...han.filter(({ name }) => name === preferred),
      ...han.filter(({ name }) => name !== preferred),
    ];
  }

  #inFonts(text: string, right_to_left: boolean, fonts: readonly CharacterFont[]): TextRun[] {
    const runs: { text: string; font: string; right_to_left: boolean }[] = [];
    for (const character of text) {
      const last = runs.at(-1);
      const font = findFont(character, last?.font, fonts);
      const shown = font === undefined ? this.#mark() : character;
      const name = font ?? this.#fonts[0]!.name;
      if (last?.font === name) last.text += shown;
      else runs.push({ text: shown, font: name, right_to_left });
    }
    return right_to_left ? runs.reverse() : runs;
  }

  #mark(): string {
    this.lacking = true;
    return MARK;
  }
}

function findFont(character: string, current: string | undefined, fonts: readonly CharacterFont[]): string | undefined {
  const own = fonts.find(({ name }) => name === current);
  if (own && NEUTRAL.test(character) && own.has(character)) return own.name;
  return fonts.find(({ has }) => has(character))?.name;
}

const HAN_OF_COUNTRY: Readonly<Record<string, HanFont>> = {
  CN: 'NotoSansSC',
  SG: 'NotoSansSC',
  TW: 'NotoSansTC',
  HK: 'NotoSansTC',
  MO: 'NotoSansTC',
  JP: 'NotoSansJP',
  KR: 'NotoSansKR',
};

/** Selects the font of Chinese characters by the country, else by the other letters of the line; null for a line without any. */
function selectHanFont(line: string, country: string | null): HanFont | null {
  if (!/[\p{scx=Han}\p{scx=Kana}\p{scx=Hira}\p{scx=Hang}\p{scx=Bopo}]/u.test(line)) return null;
  const byCountry = HAN_OF_COUNTRY[country?.toUpperCase() ?? ''];
  if (byCountry) return byCountry;
  if (/[\p{sc=Kana}\p{sc=Hira}]/u.test(line)) return 'NotoSansJP';
  if (/\p{sc=Hang}/u.test(line)) return 'NotoSansKR';
  return /\p{sc=Bopo}/u.test(line) ? 'NotoSansTC' : 'NotoSansSC';
}

/** A line in visual order from left to right. A right-to-left part is one piece, in reading order. */
function splitVisually(line: string): { part: string; right_to_left: boolean }[] {
  const levels = getEmbeddingLevels(line, 'auto');
  if (levels.levels.every((level) => level === 0)) return [{ part: line, right_to_left: false }];
  const positions = Array.from({ length: line.length }, (_none, index) => index);
  for (const [start = 0, end = 0] of getReorderSegments(line, levels)) {
    positions.splice(start, end - start + 1, ...positions.slice(start, end + 1).reverse());
  }
  return groupByDirection(positions, line, levels.levels);
}

function groupByDirection(
  positions: readonly number[],
  line: string,
  levels: Uint8Array,
): { part: string; right_to_left: boolean }[] {
  const parts: { units: number[]; right_to_left: boolean }[] = [];
  for (const position of positions) {
    const right_to_left = levels[position]! % 2 === 1;
    const last = parts.at(-1);
    if (last?.right_to_left === right_to_left) last.units.push(position);
    else parts.push({ units: [position], right_to_left });
  }
  return parts.map(({ units, right_to_left }) => {
    const inOrder = right_to_left ? units.toReversed() : units;
    return { part: inOrder.map((unit) => line[unit]).join(''), right_to_left };
  });
}
