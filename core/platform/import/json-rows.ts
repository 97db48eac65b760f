/**
 * Reads the rows of a JSON file that arrives in pieces: the elements of an array, or one value per line. Each row is cut
 * out as text, so numbers keep their digits. A file of any size takes the memory of one row.
 */
import { invalid } from '../../foundation/error.ts';

export const ROW_LENGTH_MAX = 1_048_576;

const BLANK = /\s/;

export class JsonRows {
  #kind: 'unknown' | 'array' | 'lines' | 'ended' = 'unknown';
  #rest = '';
  /** Scanned length of `#rest`, and the state of the scan at that position. */
  #at = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Tokens that may follow inside the array. After a comma it is `element`, because an array must not end with a comma. */
  #needs: 'element or end' | 'element' | 'comma or end' = 'element or end';
  #rows = 0;

  /** Yields the rows that end in this piece. */
  *take(piece: string): Generator<string> {
    this.#rest += piece;
    if (this.#kind === 'unknown') this.#begin();
    if (this.#kind === 'array') yield* this.#elements();
    else if (this.#kind === 'lines') yield* this.#lines();
    if (this.#kind === 'ended' && this.#rest.trim() !== '') throw this.#wrong('something stands behind the array');
    if (this.#rest.length > ROW_LENGTH_MAX) throw this.#wrong(`is longer than ${ROW_LENGTH_MAX} characters`);
  }

  /** Yields the last line, which may lack a line end. */
  *end(): Generator<string> {
    if (this.#kind === 'array') throw this.#wrong('the array does not end');
    const last = this.#rest.trim();
    if (this.#kind === 'lines' && last !== '') yield last;
    this.#rest = '';
  }

  #begin(): void {
    this.#rest = this.#rest.trimStart();
    if (this.#rest === '') return;
    this.#kind = this.#rest[0] === '[' ? 'array' : 'lines';
    if (this.#kind === 'array') this.#rest = this.#rest.slice(1);
  }

  *#lines(): Generator<string> {
    let from = 0;
    for (let end = this.#rest.indexOf('\n'); end >= 0; end = this.#rest.indexOf('\n', from)) {
      const line = this.#rest.slice(from, end).trim();
      from = end + 1;
      if (line === '') continue;
      this.#rows++;
      yield line;
    }
    this.#rest = this.#rest.slice(from);
  }

  *#elements(): Generator<string> {
    let start = this.#at === 0 ? -1 : 0;
    let at = this.#at;
    for (; at < this.#rest.length; at++) {
      if (start < 0) {
        start = this.#beginElement(at);
        if (this.#kind === 'ended') break;
        if (start < 0) continue;
      }
      if (!this.#isOver(this.#rest[at]!)) continue;
      // A number, for example, ends before the current character, such as a comma; an object ends with the current character, its bracket.
      const end = this.#depth < 0 ? at : at + 1;
      this.#depth = 0;
      yield this.#rest.slice(start, end);
      this.#rows++;
      this.#needs = 'comma or end';
      start = -1;
      if (end === at) at--;
    }
    this.#rest = this.#rest.slice(this.#kind === 'ended' ? at + 1 : start < 0 ? at : start);
    this.#at = start < 0 ? 0 : this.#rest.length;
  }

  /** Returns the start of an element; negative if none begins here. */
  #beginElement(at: number): number {
    const character = this.#rest[at]!;
    if (BLANK.test(character)) return -1;
    if (character === ']' && this.#needs !== 'element') {
      this.#kind = 'ended';
      return -1;
    }
    if (character === ',' && this.#needs === 'comma or end') {
      this.#needs = 'element';
      return -1;
    }
    if (this.#needs === 'comma or end' || character === ',' || character === ']')
      throw this.#wrong('must be valid JSON');
    return at;
  }

  /** Whether the element ends at this character. It ends before the character if the depth is then −1, otherwise with it. */
  #isOver(character: string): boolean {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (character === '\\') this.#isEscaped = true;
      else if (character === '"') {
        this.#isInString = false;
        return this.#depth === 0;
      }
      return false;
    }
    if (character === '"') this.#isInString = true;
    else if (character === '{' || character === '[') this.#depth++;
    else if (character === '}' || character === ']') {
      this.#depth--;
      return this.#depth <= 0;
    } else if (this.#depth === 0 && (character === ',' || BLANK.test(character))) {
      this.#depth = -1;
      return true;
    }
    return false;
  }

  #wrong(why: string) {
    return invalid(`row ${this.#rows + 1}`, why);
  }
}
