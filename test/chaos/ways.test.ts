import { chaosSeeds } from '../support/chaos-seeds.ts';
import { waysStage } from './ways-stage.ts';

chaosSeeds('chaos on the ways to the stores', waysStage, { seeds: [5, 6], minutes: 0.08, timeout_ms: 240_000 });
