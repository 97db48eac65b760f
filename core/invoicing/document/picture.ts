/**
 * Logo of a document: a small PNG or JPEG as a data URL, so that rendering needs no network (docs/rules/documents.md,
 * "What can be set").
 */

/** Maximum length of a logo in characters; about 250 KB of image data. */
export const LOGO_TEXT_MAX = 350_000;
/** Maximum number of pixels. Rendering unpacks the image, so its dimensions count, not the file size. */
const POINTS_MAX = 4_000_000;

export function isPicture(url: string): boolean {
  const [, kind, text = ''] = /^data:image\/(png|jpeg);base64,([A-Za-z0-9+/]+={0,2})$/.exec(url) ?? [];
  const bytes = Buffer.from(text, 'base64');
  return kind === 'png' ? isPng(bytes) : kind === 'jpeg' && isJpeg(bytes);
}

const PNG_BEGINS = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function isPng(bytes: Buffer): boolean {
  if (bytes.length < 33 || !bytes.subarray(0, 8).equals(PNG_BEGINS)) return false;
  return bytes.readUInt32BE(16) * bytes.readUInt32BE(20) <= POINTS_MAX;
}

function isJpeg(bytes: Buffer): boolean {
  return bytes.length > 4 && bytes.readUInt16BE(0) === 0xffd8 && bytes.readUInt16BE(bytes.length - 2) === 0xffd9;
}
