import { chaosSeeds } from '../support/chaos-seeds.ts';
import { embeddedStage } from './embedded-stage.ts';

chaosSeeds('chaos', embeddedStage, { seeds: [1, 2, 3], minutes: 0.08, timeout_ms: 240_000 });
