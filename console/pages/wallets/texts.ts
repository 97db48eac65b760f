import { defineTexts } from '../../texts/texts.ts';
import { WALLET_TEXTS_DE } from './texts-de.ts';
import { WALLET_TEXTS_EN } from './texts-en.ts';

export const TEXTS = defineTexts(WALLET_TEXTS_EN, { de: WALLET_TEXTS_DE });
