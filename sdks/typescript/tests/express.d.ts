// Express has no types of its own, and one test needs none.
declare module "express";
